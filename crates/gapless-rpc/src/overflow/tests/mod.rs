mod damage;
mod endings;
mod limits;
mod order;
mod support;
